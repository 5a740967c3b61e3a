"""Commands of the form `skyrocket NOUN VERB`: what operators look at and change; a module per noun."""
