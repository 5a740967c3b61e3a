"""Run by an interpreter that has Grafana's package: a dashboard from the input into its types, and out again."""

import json
import sys

from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

plugins.register_default_plugins()
json.dump(Dashboard.from_json(json.load(sys.stdin)), sys.stdout, cls=encoder.JSONEncoder)
