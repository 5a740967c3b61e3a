"""Jobs over messages: each module has DataFrame → DataFrame functions and one `run` that is a sentence of them.

    report = trace.run(traces, messages)      report.print(); report.write(Path("out"))

`inputs` says where messages come from (topics, a store directory, an archive); the command line is `cli/pipeline`.
"""
