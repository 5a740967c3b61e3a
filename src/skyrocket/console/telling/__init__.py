"""Others are told: why something was refused, and alerts and changes, which wait until a webhook or mails have them."""
