"""Arguments that take one of a few names."""


def one_of(argument, value, valid):
    """`value`, if it is one of `valid`; else ValueError, with those."""
    if value not in valid:
        names = ", ".join(repr(name) for name in valid)
        raise ValueError(f"{argument}={value!r} is not known; valid: {names}")
    return value


def enumerator(argument, value, valid):
    """The API's name of a value: PLANE_POLICY_AUTO of plane_policy="auto"."""
    return f"{argument}_{one_of(argument, value.lower(), valid)}".upper()
