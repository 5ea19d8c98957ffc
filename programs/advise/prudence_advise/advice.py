# SPDX-License-Identifier: MIT
"""The answer: mechanisms in the order of their rates, why, up to which share of updates, and what memory it takes."""

import dataclasses

import numpy

from . import errors, mechanisms

DRAWS = 200
SHARES = numpy.logspace(-5, 0, 61)
ENOUGH = 0.95  # a mechanism that reaches this of the best one's rate is as good
TITLES = {one.name: one.title for one in mechanisms.MECHANISMS}


def interval(values, span=errors.NONE):
    """Returns the value of the median, and the range of nine tenths of the draws, times the error of the model (`span`)."""
    values = numpy.atleast_1d(values)
    return {"median": float(values[0]), "low": float(numpy.quantile(values, 0.05)) * span[0],
            "high": float(numpy.quantile(values, 0.95)) * span[1]}


def why_not(name, load, needs):
    """Why a mechanism cannot serve; None: it can."""
    if name == "buckets" and load.buckets <= 1:
        return "the load names no buckets (--buckets)"
    if name == "seqlock" and needs.linked:
        return ("a reader may follow a pointer to memory that was freed during the read; "
                "with type-stable memory it can serve (--data plain)")
    if name == "seqlock" and (needs.blocking or needs.stays):
        return "readers that block or stay are retried without end"
    if name == "spinlock" and needs.blocking:
        return "the holder may not block"
    if name == "brlock" and needs.blocking:
        return "the holder may not block"
    return None


def kept_by_reader(rate, load, needs):
    """Returns the bytes that wait for the reader that stays, under RCU: all that are deferred during its stay."""
    return rate * load.updates * needs.stays * load.size


def why_not_rcu(rate, load, needs):
    """Returns reasons as why_not() does, from the evaluation: where deferred objects do not fit, updates wait for the reader, or memory grows."""
    kept = kept_by_reader(rate, load, needs)
    if not load.latent_limit or kept <= load.latent_limit:
        return None
    return (f"a reader that stays for {time_text(needs.stays)} keeps {bytes_text(kept)} of deferred objects, "
            f"and latent_limit is {bytes_text(load.latent_limit)}")


@dataclasses.dataclass
class Needs:
    linked: bool = True  # readers follow pointers to memory that updates free
    blocking: bool = False  # readers block inside sections
    fresh: bool = False  # a reader must not see data that an update has replaced
    stays: float = 0.0  # ns for which one reader may keep its data, in addition to all others


def deferral_text(details):
    return (f"an update's deferral costs {value(details['deferral_ns']):.0f} ns with its share of a grace period, which serves "
            f"{value(details['objects_per_grace_period']):.0f} objects")


def reasons_of(name, machine, load, needs, rate, waiting, cost, error):
    """Writes the reasons as sentences, from the model and from the measurements."""
    active = mechanisms.active_cpus(machine, load)
    found = []
    if load.threads > active and value(cost.holding) > 0 and waiting >= 0.01:
        found.append("threads lose their CPU while others spin for a lock that they hold")
    line = float(numpy.atleast_1d(machine.line(active))[0])
    if waiting >= 0.01:
        found.append(f"sections wait for each other {100 * waiting:.0f} % of the time")
    if name in ("mutex", "spinlock", "rwlock") and active > 1:
        each = "each section" if name != "rwlock" else "each section, read or update,"
        found.append(f"{each} fetches the lock's line, {line:.0f} ns on average")
    if name == "brlock" and load.updates > 0:
        found.append(f"an update takes {max(active, load.threads)} locks, {value(cost.exclusive):.0f} ns in which readers wait")
    if name == "buckets":
        found.append(f"{load.operations} {'lock' if load.operations == 1 else 'locks'} a section")
    if name == "seqlock":
        without = mechanisms.solve(dataclasses.replace(cost, retried=0.0), load.updates, active, load.between)[0]
        lost = 1 - value(mechanisms.solve(cost, load.updates, active, load.between)[0] / without)
        if lost >= 0.01:
            found.append(f"readers repeat reads that met an update: {share_text(lost)} of the rate without that")
    if name == "hazard":
        found.append(f"each of {load.operations} objects costs a reader {value(mechanisms.protection(machine)):.1f} ns, "
                     "and readers may block")
        if load.updates > 0:
            found.append(deferral_text(cost.details))
        if needs.stays:
            found.append("a reader that stays keeps only the objects that it has named")
    if name not in ("rcu", "hazard", "seqlock") and needs.stays:
        found.append(f"an update waits for a reader that stays, {time_text(needs.stays)}")
    if name == "rcu":
        details = cost.details
        reader = machine["reader_fenced" if details["fenced"] else "reader_free"]
        found.append(f"a section costs a reader {value(reader):.1f} ns, and it writes no shared line")
        if load.updates > 0:
            found.append(deferral_text(details))
        if needs.stays and load.updates > 0:
            found.append(f"a reader that stays for {time_text(needs.stays)} keeps "
                         f"{bytes_text(kept_by_reader(rate, load, needs))} of deferred objects")
        if needs.blocking:
            found.append("readers that block need a domain of kind srcu, whose sections cost more")
    if name in ("rcu", "hazard") and needs.fresh:
        found.append("readers may see replaced data: mark obsolete objects, or check a version")
    if error.measured_here(name) and error.span(name) != errors.NONE:
        low, high = error.span(name)
        found.append(f"measured here: {low:.2g} to {high:.2g} times the value of the model")
    return found


def value(number):
    """The median."""
    return float(numpy.atleast_1d(number).flat[0])


def with_shares(load):
    return dataclasses.replace(load, updates=SHARES[:, None])


def breakevens(machine, load, candidates, error):
    """Up to which share of updates RCU is faster than each of the others, and than all of them; each with the model's error."""
    many = with_shares(load)
    rates = {one.name: mechanisms.evaluate(one, machine, many)[0] for one in candidates}
    if "rcu" not in rates:
        return {}
    ours = rates.pop("rcu")
    theirs = {name: [rate / factor for factor in (1.0, *error.span_between("rcu", name))] for name, rate in rates.items()}
    if rates:
        theirs["all"] = [numpy.maximum.reduce(list(one)) for one in zip(*theirs.values())]
    return {name: breakeven_interval(ours, three) for name, three in theirs.items()}


def breakeven_interval(ours, theirs):
    """`theirs`: the rates of others as the model has them, and if RCU is worse, and better, than it says."""
    median, low, high = (mechanisms.breakeven(SHARES, ours, one) for one in theirs)
    return {"median": float(median[0]), "low": float(numpy.quantile(low, 0.05)), "high": float(numpy.quantile(high, 0.95))}


def advise(machine, load, needs, current):
    """The answer as a document; `current`: the mechanism of the program today, by name."""
    evaluated, ranking = {}, []
    error = errors.Errors(machine.document, load.threads, machine.cpus)
    for one in mechanisms.MECHANISMS:
        if not (one.needs_buckets and load.buckets <= 1):
            evaluated[one.name] = mechanisms.evaluate(one, machine, load)
    ideal = mechanisms.evaluate(mechanisms.Mechanism("none", "", mechanisms.none, 0), machine, load)[0]
    today = evaluated[current][0]
    for name, (rate, waiting, cost) in evaluated.items():
        ranking.append({
            "name": name, "title": TITLES[name],
            "unsuitable": why_not_rcu(value(rate), load, needs) if name == "rcu" else why_not(name, load, needs),
            "operations_per_second": interval(rate * load.operations * 1e9, error.span(name)),
            "gain": interval(rate / today, error.span_between(name, current)),
            "of_ideal": value(rate / ideal), "waiting": value(waiting), "memory_bytes": value(cost.memory),
            "reasons": reasons_of(name, machine, load, needs, value(rate), value(waiting), cost, error)})
    ranking.sort(key=lambda row: (row["unsuitable"] is not None, -row["operations_per_second"]["median"]))
    suitable = [row for row in ranking if row["unsuitable"] is None]
    candidates = [mechanisms.BY_NAME[row["name"]] for row in suitable]
    details = {key: (bool(number) if isinstance(number, bool) else value(number))
               for key, number in evaluated["rcu"][2].details.items()}
    return {"program": "prudence-advise", "format": 1, "load": dataclasses.asdict(load),
            "needs": dataclasses.asdict(needs), "current": current,
            "machine": {"cpus": machine.cpus, "nodes": machine.nodes, "active": mechanisms.active_cpus(machine, load),
                        "host": machine.document.get("host"), "date": machine.document.get("date")},
            "assumed": list(machine.assumed), "ranking": ranking, "choice": choose(suitable),
            "breakeven": breakevens(machine, load, candidates, error), "rcu": details,
            "model_error": {"kind": error.kind, "here": error.here, "checks": len(error.checks), "cpus": error.cpus}}


def choose(suitable):
    """The one that takes the least effort of those that are as good as the best."""
    best = suitable[0]["operations_per_second"]["median"]
    good = [row for row in suitable if row["operations_per_second"]["median"] >= ENOUGH * best]
    return min(good, key=lambda row: mechanisms.BY_NAME[row["name"]].effort)["name"]


# ------------------------------------------------------------------------------------------- as text

def bytes_text(count):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def time_text(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def share_text(share):
    return f"{100 * share:.3g} %"


def times_text(gain):
    return f"{gain['median']:.2f}x ({gain['low']:.2f} to {gain['high']:.2f})"


def rate_text(rate):
    return f"{rate / 1e6:.3g} M/s"


def verdict(answer):
    """Returns a sentence, and the share of updates up to which the sentence holds."""
    rows = {row["name"]: row for row in answer["ranking"]}
    choice, ours = rows[answer["choice"]], rows["rcu"]
    now = rows[answer["current"]]["title"]
    limit = answer["breakeven"].get("all")
    if answer["choice"] == "rcu":
        pays = "RCU pays" if ours["gain"]["low"] > 1 or answer["current"] == "rcu" else "RCU may pay, within the model's error"
        first = f"{pays}: {times_text(ours['gain'])} the operations of the {now}, for {bytes_text(ours['memory_bytes'])}."
    elif answer["choice"] == answer["current"]:
        best = answer["ranking"][0]
        first = (f"Keep the {now}: the best, {best['title']}, would make {times_text(best['gain'])} its operations."
                 if best["name"] != answer["current"] else f"Keep the {now}: nothing is faster.")
    else:
        gain = f"{times_text(choice['gain'])} the operations of the {now}."
        one = choice["title"] if answer["choice"] == "hazard" else f"a {choice['title']}"
        first = (f"Use {one}: {gain}" if choice["gain"]["low"] > 1
                 else f"{one[0].upper()}{one[1:]} may be better than the {now}, within the model's error: {gain}")
        if ours["unsuitable"] is None and ours["gain"]["median"] > choice["gain"]["median"]:
            first += f" RCU would make {times_text(ours['gain'])}; that is too close to be worth the effort."
    if ours["unsuitable"] is not None:
        first += f" RCU is left out: {ours['unsuitable']}."
    if limit is None:
        return first
    if limit["median"] >= 1:
        return first + " RCU is the fastest at any share of updates."
    if limit["median"] <= 0:
        return first + " RCU is not the fastest at any share of updates."
    return first + (f" RCU is the fastest up to {share_text(limit['median'])} updates "
                    f"({share_text(limit['low'])} to {share_text(limit['high'])}).")


def load_text(load):
    return (f"{load['threads']} threads, {share_text(load['updates'])} updates, {load['operations']} operations a section of "
            f"{load['lookup']:g} ns each, {load['update']:g} ns more for an update, {load['between']:g} ns between "
            f"sections, {load['live']:g} live objects of {load['size']} B, {load['buckets']} "
            f"{'bucket' if load['buckets'] == 1 else 'buckets'}")


def error_text(error):
    """Says how the error of the model was found, and with how many CPUs."""
    checks = "a check" if error["checks"] == 1 else f"{error['checks']} checks"
    place = "here" if error["here"] else "on another machine"
    ending = "" if error["here"] else ": `prudence-advise check` measures it here"
    return (f"Intervals hold the spread of the calibration and the model's error in {checks} {place} "
            f"({error['kind']}, {error['cpus']} CPUs){ending}.")


def text(answer):
    machine, host = answer["machine"], answer["machine"]["host"] or {}
    lines = [verdict(answer), "", f"Load: {load_text(answer['load'])}",
             f"Machine: {host.get('cpu', 'unknown')}, {machine['active']} of {machine['cpus']} CPUs busy, "
             f"{machine['nodes']} {'node' if machine['nodes'] == 1 else 'nodes'}"]
    lines += [f"Assumed: {one}" for one in answer["assumed"]]
    lines.append(error_text(answer["model_error"]))
    lines += ["", f"{'':42}{'operations':>12}{'against ' + answer['current']:>26}{'memory':>10}"]
    for number, row in enumerate((one for one in answer["ranking"] if one["unsuitable"] is None), 1):
        lines.append(f"{number:>2}. {row['title']:<38}{rate_text(row['operations_per_second']['median']):>12}"
                     f"{times_text(row['gain']):>26}{bytes_text(row['memory_bytes']):>10}")
        lines += [f"      {reason}" for reason in row["reasons"]]
    for row in answer["ranking"]:
        if row["unsuitable"]:
            lines.append(f" -. {row['title']}: {row['unsuitable']}")
    shares = {name: limit for name, limit in answer["breakeven"].items() if name != "all"}
    if shares:
        lines += ["", "RCU is faster, up to this share of updates, than"]
        lines += [f"    {TITLES[name]:<40}{share_text(limit['median']):>10}   "
                  f"({share_text(limit['low'])} to {share_text(limit['high'])})" for name, limit in shares.items()]
    ours = answer["rcu"]
    lines += ["", f"RCU: {ours['objects_in_flight']:.0f} objects deferred and not yet reusable "
              f"({share_text(ours['objects_in_flight'] / max(1, answer['load']['live']))} of those that are live), "
              f"grace periods of {ours['grace_period_ns'] / 1000:.3g} us, "
              f"readers {'fenced' if ours['fenced'] else 'fence-free'}"]
    return "\n".join(lines)
