"""`produce` and `consume` behind their options: input to messages, messages to output, where to begin, how fast."""
