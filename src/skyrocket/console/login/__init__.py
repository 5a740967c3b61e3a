"""Who may look and who may change; every change is written down."""
