"""What brokers refuse of the options that they are told, in the words of who gave the options."""

from skyrocket.client.core.errors import BrokerRefused
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.settings import Wanted
from skyrocket.protocol.codes import ResponseCode


def named(refusal: BrokerRefused, wanted: Wanted) -> Exception:
    """What a broker says of conditions and tags as an error about our option; else the refusal itself."""
    is_condition = wanted.expression_type == "SQL92"
    if is_condition and refusal.code != ResponseCode.SUBSCRIPTION_PARSE_FAILED and "SQL92" in (refusal.remark or ""):
        step = "set enablePropertyFilter=true at the brokers, or filter in Spark: .where(\"properties['price'] > 10\")"
    elif refusal.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED:
        step = "write it more simply, or filter in Spark with .where(…)"
    else:
        return refusal
    option = "sqlFilter" if is_condition else "tags"
    return OptionError(f'option "{option}" of format "rocketmq" is {wanted.expression}: {refusal}; {step}')
