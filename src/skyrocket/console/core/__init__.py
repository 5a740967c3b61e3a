"""What a console is made of, and how it is set up."""
