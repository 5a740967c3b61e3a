"""Orders ▸ revenue per minute ▸ topic, lake and plot; docs/guides/orders-walk.md goes through it step by step."""
