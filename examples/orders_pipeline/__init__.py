"""Orders ▸ revenue per minute ▸ topic, lake and plot; docs/orders-walk.md goes through it step by step."""
