"""What a job has found: tables, plots and a count of findings, for the terminal, for Parquet and for the browser.

A job returns a Report; who called it prints and writes it. Nothing here knows about Spark but `progress`.
"""

from skyrocket.pipeline.report.phases import phase
from skyrocket.pipeline.report.plot import Plot
from skyrocket.pipeline.report.progress import stage_progress
from skyrocket.pipeline.report.report import Report

__all__ = ["Plot", "Report", "phase", "stage_progress"]
