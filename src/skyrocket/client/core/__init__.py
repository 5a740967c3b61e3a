"""What all members of a client share: the instance, routes, name servers, settings, messages and errors."""
