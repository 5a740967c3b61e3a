"""Others are told: alerts and changes wait in bounded queues until a webhook or a mail server has taken them."""
