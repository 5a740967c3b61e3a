"""The console: a cluster in the browser, of Skyrocket or of Apache RocketMQ.

cluster/   what is asked of the cluster, once for all browsers     history/   rates and lag over time, one SQLite file
api/       a documented JSON endpoint for every number of a page   live/      the same, pushed when it changes
login/     who may change what, and the record of each change      static/    the pages: ES modules and CSS, as written
"""
