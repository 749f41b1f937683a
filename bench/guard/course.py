"""What one contender of the gauntlet goes through in a cell: phases one after another, each with what was counted in it."""
import contextlib
import time

import bulk as bulks
import load as loads


class Course:
    """Phases one after another on a device."""

    def __init__(self, arguments, cell, device, load):
        self.arguments, self.cell, self.device, self.load = arguments, cell, device, load

    def look(self):
        """The device and the limit now."""
        writes, written = self.device.written()
        return {"at": time.monotonic(), "writes": writes, "bytes": written, "limit_bytes": self.device.limit()}

    def watch(self, flooded):
        """The device through a phase: samples, a second apart, and the regime of each second. A device that bursts is as fast as
        what it has done leaves it."""
        seconds, shape = self.arguments.phase_seconds, self.device.shape
        bucket = shape.bucket(seconds) if flooded else None
        samples, regimes = [self.look()], []
        for second in range(seconds):
            if bucket is None:
                regimes.append(shape.stepped(second, seconds))
            elif second == 0:
                regimes.append(shape.full)
            else:
                spent = (samples[-1][key] - samples[-2][key] for key in ("writes", "bytes", "at"))
                regimes.append(bucket.after(*spent))
            self.device.throttle(regimes[-1])
            time.sleep(max(0.0, samples[0]["at"] + second + 1 - time.monotonic()))
            samples.append(self.look())
        return samples, regimes

    def phase(self, name, threads, flooded, at_end):
        """One phase: what was committed in every second, and what the device did. `at_end` is called before the last commits are
        waited for."""
        with contextlib.ExitStack() as stack:
            self.device.throttle(self.device.shape.full)
            commits = None
            if threads:
                commits = stack.enter_context(loads.Commits(self.load, self.device, threads, self.arguments.phase_seconds))
            samples, regimes = self.watch(flooded)
            at_end()
            counted = commits.finish() if commits else []
        found = {"name": name, "threads": threads, "bulk": flooded, "regimes": regimes, "seconds": counted, "samples": samples}
        return found | {"bulk_write_bytes": self.device.largest_write()}

    def run(self, phases, private=None):
        """All phases; one flood runs through those that follow each other with one. `private`: static limits of the bulk writer's
        cgroup."""
        done, bulk = [], None
        bound = (self.arguments.phase_seconds + loads.PATIENCE) * len(phases)
        with contextlib.ExitStack() as stack:
            prefix = stack.enter_context(bulks.own_group(self.arguments.bulk_in, self.arguments.weir, self.device, private))

            def let_go():
                # Commits may wait behind all that is dirty, for minutes: as the last phase is over, it may go.
                if bulk:
                    bulk.stop()
                self.device.lift()

            for number, (name, threads, flooded) in enumerate(phases):
                if flooded and bulk is None:
                    bulk = stack.enter_context(bulks.Bulk(self.device, self.cell.bulk, bound, prefix))
                elif not flooded and bulk is not None:
                    bulk.stop()
                last = number == len(phases) - 1
                done.append(self.phase(name, threads, flooded, let_go if last else lambda: None))
            if bulk is not None:
                bulk.stop()
                bulk.remove()
        self.device.lift()
        self.load.rest()
        self.device.settle()
        return done
