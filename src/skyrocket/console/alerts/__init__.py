"""Alerts: rules over what the view knows, with patience in both directions, told to a webhook and by e-mail."""
