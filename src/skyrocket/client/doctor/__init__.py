"""What is wrong with a cluster: facts are gathered once, then judged by pure functions, each with its remedy."""
