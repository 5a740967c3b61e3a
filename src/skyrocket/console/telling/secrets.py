"""What nobody may read on a page or in the audit: passwords, by the names that they have there."""

from typing import Any, Final

STARS: Final = "***"
_WORDS: Final = ("password", "secret", "credentials", "authenticationuser")


def is_secret(name: str) -> bool:
    """Whether a setting or field of this name is one."""
    return name.lower() == "token" or any(word in name.lower() for word in _WORDS)


def without_secrets(value: Any) -> Any:
    """The same, with stars in place of them, however deep they are."""
    if isinstance(value, dict):
        return {name: STARS if each and is_secret(str(name)) else without_secrets(each) for name, each in value.items()}
    return [without_secrets(each) for each in value] if isinstance(value, list | tuple) else value
