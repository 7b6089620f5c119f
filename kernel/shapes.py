"""attrs classes that are cheap to make: `frozen` and `define`, with methods that wait for their first use.

Why. attrs writes `__init__`, `__repr__`, `__eq__` and `__hash__` of a class as source and compiles it. With
some 700 classes that is a third of the time until a command line shows its first event, and most of them
are never printed or compared. Here only `__init__` is written; the others are shared functions, which look
at the fields of a class when they are first called for it. What they give is what attrs' own would give, except
that an object of `define` inside another one is only named: a whole kernel hangs on each of them.

To a type checker these are `attrs.frozen` and `attrs.define`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import define as define
    from attrs import frozen as frozen
else:
    from operator import attrgetter

    import attrs

    _being_shown = set()
    """Objects inside whose repr we are, by identity: one that holds itself is shown as dots there."""

    def frozen(maybe_cls=None, **options):
        """As `attrs.frozen`."""
        return _made(attrs.frozen, maybe_cls, options)

    def define(maybe_cls=None, **options):
        """As `attrs.define`."""
        return _made(attrs.define, maybe_cls, options)

    def _made(make, maybe_cls, options):
        def decorate(cls):
            if issubclass(cls, BaseException):
                return make(cls, **options)
            compares, is_frozen = options.get("eq", True) and "__eq__" not in cls.__dict__, make is attrs.frozen
            made = make(cls, **{**options, "repr": False, "eq": False})
            if "__repr__" not in cls.__dict__:
                made.__repr__ = _repr if is_frozen else _repr_of_owner
            if compares:
                made.__eq__, made.__hash__ = _comparison(made, is_frozen)
            return made

        return decorate if maybe_cls is None else decorate(maybe_cls)

    def _repr_of_owner(self):
        """Of what has a life of its own: inside another it is only named, because all that lives knows each other."""
        return f"{_name(self)}(...)" if _being_shown else _repr(self)

    def _name(self):
        return type(self).__qualname__.rsplit(">.", 1)[-1]

    def _repr(self):
        if id(self) in _being_shown:
            return "..."
        _being_shown.add(id(self))
        try:
            parts = [f"{field.name}={_shown(field, self)}" for field in attrs.fields(type(self)) if field.repr]
            return f"{_name(self)}({', '.join(parts)})"
        finally:
            _being_shown.discard(id(self))

    def _shown(field, owner):
        value = getattr(owner, field.name, attrs.NOTHING)
        return repr(value) if field.repr is True else field.repr(value)

    def _comparison(cls, is_frozen):
        """Equality of the fields, for objects of the very same class; a hash only where nothing can change."""
        values = None

        def values_of(thing):
            nonlocal values
            names = [field.name for field in attrs.fields(cls) if field.eq]
            values = attrgetter(*names) if len(names) > 1 else (lambda it: (getattr(it, names[0]),)) if names else (lambda _it: ())
            return values(thing)

        def equal(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            give = values or values_of
            return give(self) == give(other)

        def hashed(self):
            return hash((cls, (values or values_of)(self)))

        return equal, hashed if is_frozen else None
