"""A periodic cycle of your own, measured by rtproof:

    rtproof measure --workload 'exec:python3 cycle.py'

Each cycle writes `DUE VALUE`: when it was due (CLOCK_MONOTONIC) and how late it began, in
nanoseconds. From the due times rtproof knows which cycles were missed.
"""
import os
import time


def main():
    period_ns = int(os.environ.get("RTPROOF_PERIOD_NS", "1000000"))  # what --period says
    due_ns = time.monotonic_ns() + period_ns
    while True:
        wait_ns = due_ns - time.monotonic_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / 1e9)
        late_ns = max(0, time.monotonic_ns() - due_ns)

        # ... the work of the cycle ...

        try:
            print(due_ns, late_ns, flush=True)
        except BrokenPipeError:  # rtproof has ended
            os._exit(0)
        due_ns += period_ns
        while due_ns < time.monotonic_ns():
            due_ns += period_ns  # skip what was missed; rtproof counts it


main()
