"""Run by Airflow's own interpreter: looks once with the example's sensor, runs its operator, prints both as JSON.

python tests/pipeline/airflow_run.py examples/orchestration/airflow_dag.py
"""

import json
import runpy
import sys
from typing import Any

dag: Any = runpy.run_path(sys.argv[1])["dag"]
told: dict[str, Any] = {"order": [sorted(dag.get_task("caught_up").downstream_task_ids)]}
told["caught_up"] = dag.get_task("caught_up").poke({})
if "revenue" in sys.argv[2:]:
    told["revenue"] = dag.get_task("revenue").execute({})
sys.stdout.write(f"\n{json.dumps(told)}\n")
