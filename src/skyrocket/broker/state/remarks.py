"""Texts of refusals that several parts share; tools and clients match on them."""

# The fixed end of many remarks.
FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
