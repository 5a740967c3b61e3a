"""How operators see what commands found: tables, JSON, CSV; and changes before they are made."""
