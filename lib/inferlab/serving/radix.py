"""A radix tree of prefixes: which tokens' keys and values are already in memory (chapter 10).

Each edge holds a run of tokens; requests that begin alike share the edges of what they share. A
lookup walks from the root as far as the tokens agree, which is the longest common prefix with
anything stored. When memory runs short, the leaf that was used longest ago gives up its tokens,
last token first; edges that a running request stands on are locked. This is the data structure of
SGLang's RadixAttention (Zheng et al., 2024).
"""

from __future__ import annotations

import heapq

from inferlab.serving.requests import Segment


class Node:
    """One edge of the tree and the point at its end. Made and changed by `RadixTree` only."""

    __slots__ = ("children", "gone", "length", "locks", "parent", "queued", "runs", "used")

    def __init__(self, runs, parent, used, locks=0):
        self.runs = runs  # [(key, start, stop)]: the tokens start..stop-1 of segment `key`
        self.length = sum(stop - start for _, start, stop in runs)
        self.parent = parent
        self.children = {}  # by the first token of the child's edge: (key, start)
        self.used = used
        self.locks = locks
        self.queued = False
        self.gone = False

    @property
    def first(self):
        """The first token of the edge, by which its parent finds it."""
        key, start, _ = self.runs[0]
        return key, start


class RadixTree:
    """Prefixes of prompts, as tuples of `Segment`, with eviction of the least recently used.

    tokens: how many tokens are stored. evictable: how many of them no running request holds.
    """

    def __init__(self):
        self.root = Node([], None, 0)
        self.tokens = 0
        self.evictable = 0
        self._now = 0
        self._leaves = []  # heap of (last use, tie-break, node); entries may be out of date
        self._pushes = 0

    def peek(self, prompt) -> int:
        """Length in tokens of the longest stored prefix of `prompt`; changes nothing."""
        _, matched, _, _ = self._walk(prompt)
        return matched

    def match(self, prompt) -> tuple[Node, int]:
        """The longest stored prefix of `prompt`: the node at its end, and its tokens.

        Marks the whole path as just used; splits an edge where the prefix ends inside one.
        """
        node, matched, _, _ = self._walk(prompt, split=True)
        self._touch(node)
        return node, matched

    def insert(self, prompt) -> tuple[Node, int]:
        """Store all of `prompt`: the node at its end, and how many tokens were not there yet."""
        node, _, index, offset = self._walk(prompt, split=True)
        rest = [(key, 0, length) for key, length in prompt[index:]]
        if rest:
            rest[0] = (rest[0][0], offset, rest[0][2])
            leaf = Node(rest, node, self._now)
            node.children[leaf.first] = leaf
            node = leaf
            self.tokens += leaf.length
            self.evictable += leaf.length
            self._queue(leaf)
        self._touch(node)
        return node, node.length if rest else 0

    def lock(self, node):
        """Keep the path to `node` from eviction until `unlock`; locks add up."""
        while node.parent is not None:
            if node.locks == 0:
                self.evictable -= node.length
            node.locks += 1
            node = node.parent

    def unlock(self, node):
        """Take back one `lock`."""
        while node.parent is not None:
            node.locks -= 1
            if node.locks == 0:
                self.evictable += node.length
                self._queue(node)
            node = node.parent

    def evict(self, tokens) -> int:
        """Free `tokens` tokens, least recently used leaves first; how many could be freed."""
        freed = 0
        while freed < tokens and self._leaves:
            used, _, leaf = heapq.heappop(self._leaves)
            leaf.queued = False
            if leaf.gone or leaf.locks or leaf.children:
                continue
            if leaf.used != used:
                self._queue(leaf)
                continue
            cut = min(leaf.length, tokens - freed)
            freed += cut
            self.tokens -= cut
            self.evictable -= cut
            if cut < leaf.length:
                leaf.runs = _runs_before(leaf.runs, leaf.length - cut)
                leaf.length -= cut
                self._queue(leaf)
            else:
                leaf.gone = True
                del leaf.parent.children[leaf.first]
                self._queue(leaf.parent)
        return freed

    def prefixes(self):
        """Every stored path from the root to a leaf, as segments: for pictures and tests."""

        def below(node, path):
            path = [*path, *node.runs]
            if not node.children and node.parent is not None:
                yield path
            for child in node.children.values():
                yield from below(child, path)

        return [_joined(path) for path in below(self.root, [])]

    def _walk(self, prompt, split=False):
        """Follow `prompt` from the root: (node, tokens matched, segment index, offset in it)."""
        node, matched, index, offset = self.root, 0, 0, 0
        while index < len(prompt):
            child = node.children.get((prompt[index][0], offset))
            if child is None:
                break
            common, index, offset = _common(child.runs, prompt, index, offset)
            matched += common
            if common < child.length:
                if split:
                    node = self._split(child, common)
                break
            node = child
        return node, matched, index, offset

    def _split(self, node, length):
        """Cut the edge of `node` after `length` tokens; return the new, upper node."""
        upper = Node(_runs_before(node.runs, length), node.parent, node.used, node.locks)
        node.parent.children[upper.first] = upper
        node.runs = _runs_after(node.runs, length)
        node.length -= length
        node.parent = upper
        upper.children[node.first] = node
        return upper

    def _touch(self, node):
        self._now += 1
        while node is not None:
            node.used = self._now
            node = node.parent

    def _queue(self, node):
        """Put an unlocked leaf in line for eviction, once."""
        if node.parent is None or node.children or node.locks or node.queued:
            return
        node.queued = True
        self._pushes += 1
        heapq.heappush(self._leaves, (node.used, self._pushes, node))


def _common(runs, prompt, index, offset):
    """How many tokens of `runs` the prompt repeats from (index, offset), and where that ends."""
    common = 0
    for key, start, stop in runs:
        while start < stop:
            if index == len(prompt) or prompt[index][0] != key or offset != start:
                return common, index, offset
            length = prompt[index][1]
            step = min(stop - start, length - offset)
            common += step
            start += step
            offset += step
            if offset == length:
                index, offset = index + 1, 0
    return common, index, offset


def _runs_before(runs, length):
    kept = []
    for key, start, stop in runs:
        if length <= 0:
            break
        kept.append((key, start, min(stop, start + length)))
        length -= stop - start
    return kept


def _runs_after(runs, length):
    kept = []
    for key, start, stop in runs:
        if start + length < stop:
            kept.append((key, start + max(length, 0), stop))
        length -= stop - start
    return kept


def _joined(runs):
    """Runs as segments: pieces of one segment that an edge's end had cut are one again."""
    lengths = []
    for key, start, stop in runs:
        if lengths and lengths[-1][0] == key and start == lengths[-1][1]:
            lengths[-1] = (key, stop)
        else:
            lengths.append((key, stop))
    return tuple(Segment(key, stop) for key, stop in lengths)


def longest_common_prefix(first, second) -> int:
    """Tokens that two prompts have in common from the start, without any tree.

    >>> longest_common_prefix((Segment("system", 500), Segment("a", 9)), (Segment("system", 500),))
    500
    """
    return _common([(key, 0, length) for key, length in first], second, 0, 0)[0]
