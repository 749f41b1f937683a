"""What judges of guests share: an application's log, and comparisons that say what is wrong."""


def ops(folder, name):
    """The operations of an application's log: (name, start ns, end ns, offset, bytes)."""
    lines = (folder / f"{name}.ops").read_text().splitlines()
    return [(w[0], *map(int, w[1:5])) for w in (line.split() for line in lines)]


def number_of(logged, name):
    return sum(1 for op in logged if op[0] == name)


def equal(what, found, wanted):
    if found != wanted:
        raise ValueError(f"{what}: {found}, should be {wanted}")


def at_least(what, found, bound):
    if found < bound:
        raise ValueError(f"{what}: {found}, should be at least {bound}")


def at_most(what, found, bound):
    if found > bound:
        raise ValueError(f"{what}: {found}, should be at most {bound}")


def output(folder, name):
    text = (folder / f"{name}.out").read_text()
    if not text.strip():
        raise ValueError("it said nothing")
    return text
