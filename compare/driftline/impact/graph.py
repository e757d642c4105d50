"""A tree of Python sources, followed backwards: who refers to a definition, and who to them. Files are parsed when needed."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from driftline.impact.module import CUSTOM_OPERATORS, Module, Unreadable, parse_module

SUFFIX = ".py"
INIT = "/__init__.py"


def module_name(path: str, root: str = "") -> str:
    """vllm/config/model.py -> vllm.config.model; `root` is the folder from which the package is imported."""
    inside = path.removeprefix(f"{root}/") if root else path
    return (inside.removesuffix(INIT) if inside.endswith(INIT) else inside.removesuffix(SUFFIX)).replace("/", ".")


class Graph:
    """The sources of one commit. What is no Python is named in `unread`."""

    def __init__(self, texts: Mapping[str, str], *, root: str = "") -> None:
        self._texts = texts
        self._paths = {module_name(path, root): path for path in texts}
        self._parsed: dict[str, Module | None] = {}
        self.unread: list[str] = []

    @property
    def modules(self) -> Collection[str]:
        return self._paths.keys()

    def modules_of(self, dotted: str) -> Iterator[str]:
        """The modules that an import of `dotted` runs: the one that holds it, and the packages around that one."""
        while dotted:
            if dotted in self._paths:
                yield dotted
            dotted = dotted.rpartition(".")[0]

    def path(self, module: str) -> str | None:
        return self._paths.get(module)

    def module(self, name: str) -> Module | None:
        """The parsed module; None if the tree has none of that name, or it cannot be read."""
        if name not in self._parsed:
            path = self._paths.get(name)
            self._parsed[name] = None if path is None else self._read(name, path)
        return self._parsed[name]

    def reached_from(self, changed: Iterable[str], *, inside: Callable[[str], bool]) -> set[str]:
        """All definitions (`module.name`) that refer to one of `changed`, directly or not, and `changed` themselves.

        Only modules whose path is `inside` are followed further; others are named where they are reached.
        """
        reached = set(changed)
        frontier = set(reached)
        while frontier:
            fresh: set[str] = set()
            for module, targets in self._candidates(frontier):
                fresh |= set(_referring(module, targets)) - reached
            reached |= fresh
            frontier = {name for name in fresh if self._followed(name, inside)}
        return reached

    def owner(self, definition: str) -> str | None:
        """The module that holds a definition, None for a custom operator."""
        name = definition.rpartition(".")[0]
        return name if name in self._paths else None

    def _followed(self, definition: str, inside: Callable[[str], bool]) -> bool:
        owner = self.owner(definition)
        return owner is None or inside(self._paths[owner])

    def _candidates(self, targets: set[str]) -> Iterator[tuple[Module, set[str]]]:
        """Modules whose text holds both a target's own name and that of its module, with those targets."""
        by_source: dict[str, set[str]] = {}
        for target in targets:
            by_source.setdefault(target.rpartition(".")[0], set()).add(target)
        wanted: dict[str, set[str]] = {}
        for source, names in by_source.items():
            sign = source if source == CUSTOM_OPERATORS else source.rpartition(".")[2]
            for name, path in self._paths.items():
                text = self._texts[path]
                if name == source or sign in text:
                    found = {each for each in names if each.rpartition(".")[2] in text}
                    if found:
                        wanted.setdefault(name, set()).update(found)
        for name, found in wanted.items():
            module = self.module(name)
            if module is not None:
                yield module, found

    def _read(self, name: str, path: str) -> Module | None:
        try:
            return parse_module(name, self._texts[path], package=path.endswith(INIT) or path == "__init__.py")
        except Unreadable:
            self.unread.append(path)
            return None


def _referring(module: Module, targets: set[str]) -> Iterator[str]:
    """The module's definitions that refer to a target, as `module.name`; a custom operator goes by its own name."""
    sources = {target.rpartition(".")[0] for target in targets}
    for bound, uses in module.uses.items():
        if any(_meets(use, targets, sources) for use in uses):
            yield bound if bound.startswith(CUSTOM_OPERATORS) else f"{module.name}.{bound}"


def _meets(use: str, targets: set[str], sources: set[str]) -> bool:
    """`a.b.f` and `a.b.f.attribute` refer to a.b.f; so does `a.b` alone, which hands on the whole module."""
    if use in sources:
        return True
    while use:
        if use in targets:
            return True
        use = use.rpartition(".")[0]
    return False
