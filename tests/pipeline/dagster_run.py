"""Run by Dagster's own interpreter: materialises the example's assets and prints what came of it, as JSON.

python tests/pipeline/dagster_run.py examples/orchestration/dagster_assets.py
"""

import json
import runpy
import sys
from typing import Any

import dagster as dg

names: dict[str, Any] = runpy.run_path(sys.argv[1])
result = dg.materialize([names["revenue"], names["dead_letters"], names["keeps_up"]])
told: dict[str, Any] = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
for asset in ("revenue", "dead_letters"):
    (made,) = result.asset_materializations_for_node(asset)
    told[asset] = {name: value.value for name, value in made.metadata.items()}
sys.stdout.write(f"\n{json.dumps(told)}\n")
