"""Messages that clients put: sends, replies, and what consumers send back."""
