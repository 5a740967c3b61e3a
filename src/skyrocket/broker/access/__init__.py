"""Who may do what: ACL 1.0 (accounts in plain_acl.yml) and ACL 2.0 (users and their policies).

request ─▶ needs        which resources it touches, and how
        ─▶ plain_access  the check of 1.0     ┐ raise the refusal; the router runs them before every handler
        ─▶ user_access   the check of 2.0     ┘
"""
