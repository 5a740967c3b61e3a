"""What `skyrocket demo` shows: orders that somebody makes up, their revenue per minute, and a page with the plot."""
