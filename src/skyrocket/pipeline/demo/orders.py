"""Made-up orders, equal each time; as in real life some are sent twice, and some cannot be read."""

import json
import math
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from skyrocket.client import Message

_PRICES: Final = {"tea": 4.5, "coffee": 7.25, "cup": 12.0, "kettle": 39.9}
_TWICE: Final = 40  # one order in 40
_BROKEN: Final = 200
_DAY_MINUTES: Final = 30.0  # a short day, so that its ups and downs are seen in a minute


def orders(topic: str, start: datetime, per_minute: int, seed: int = 7) -> Iterator[Message]:
    """Without end; `ts` of the orders moves on by a minute with every `per_minute` of them."""
    chance = random.Random(seed)
    number = 0
    while True:
        number += 1
        moment = start + timedelta(minutes=number / per_minute)
        product = chance.choice(list(_PRICES))
        mood = 1.5 + math.sin(number / per_minute / _DAY_MINUTES * 2 * math.pi)
        amount = _PRICES[product] * max(1, round(chance.expovariate(1 / mood)))
        order = {"order_id": f"o-{number}", "product": product, "amount": round(amount, 2), "ts": moment.isoformat()}
        body = json.dumps(order).encode()
        message = Message(topic, body if number % _BROKEN else body[:-5], keys=f"o-{number}", tags=product)
        yield message
        if number % _TWICE == 0:
            yield message
