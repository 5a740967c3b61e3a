"""Tokens for scripts, which use the JSON API in the console's own name; the operator makes them and takes them back."""

from dataclasses import dataclass
from typing import Final

from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.login.tokens import Token, TokenRefused
from skyrocket.model.words import said

family = Family("Tokens")

_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class TokensPage:
    """What is known of each; their texts are not kept."""

    tokens: list[Token]


@family.get("/api/access/tokens", secret=True)
async def tokens(call: Call) -> TokensPage:
    """Tokens for scripts, and when each was used last."""
    _check_operator(call)
    return TokensPage(call.parts.tokens.all())


@dataclass(frozen=True, slots=True)
class TokenWanted:
    """Who or what shall have it; `may_change`: also for changes."""

    name: str
    may_change: bool = False


@dataclass(frozen=True, slots=True)
class NewToken:
    """`token` is shown this once; a script sends it as the header `Authorization: Bearer …`."""

    id: str
    token: str


@family.post("/api/access/tokens")
async def make_token(call: Call, wanted: TokenWanted) -> NewToken:
    """Make a token for a script."""
    _check_operator(call)
    name = wanted.name.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadInput("name has 1 to {limit} signs: say which script has the token", limit=_LONGEST_NAME)
    made_by = call.session.account if call.session is not None else ""
    token, text = await call.parts.tokens.make(name, made_by, may_change=wanted.may_change)
    call.after = token
    return NewToken(token.id, text)


@family.delete("/api/access/tokens/{token_id}")
async def take_token(call: Call) -> Done:
    """Take a token back: it opens nothing any more."""
    _check_operator(call)
    token = await call.parts.tokens.take_back(call.path["token_id"])
    if token is None:
        raise BadInput("there is no token {token_id}: /api/access/tokens lists them", token_id=call.path["token_id"])
    call.before = token
    return Done(said("the token of {name} was taken back", name=token.name))


def _check_operator(call: Call) -> None:
    """Tokens act as the console's own account: whoever is not that could give himself more than he has."""
    session = call.session
    if session is None or session.credentials is not None or session.token is not None:
        raise TokenRefused("tokens are the operator's matter: log in with the token that the console printed")
