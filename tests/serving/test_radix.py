"""The prefix tree against plain lists of tokens."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from inferlab.serving import RadixTree, Segment, longest_common_prefix, token_count

segments = st.builds(Segment, st.sampled_from("abcd"), st.integers(1, 6))
prompts = st.lists(segments, min_size=1, max_size=5).map(tuple)


def tokens(prompt):
    return [(key, i) for key, length in prompt for i in range(length)]


def common(first, second):
    count = 0
    for a, b in zip(tokens(first), tokens(second), strict=False):
        if a != b:
            break
        count += 1
    return count


def stored(tree):
    """Distinct prefixes of all stored paths: one for each token in the tree."""
    return {
        tuple(tokens(path)[: i + 1]) for path in tree.prefixes() for i in range(token_count(path))
    }


@given(prompts, prompts)
def test_common_prefix_of_two(first, second):
    assert longest_common_prefix(first, second) == common(first, second)


@given(st.lists(prompts, min_size=1, max_size=12), prompts)
@settings(max_examples=300)
def test_a_match_is_the_longest_common_prefix_with_anything_stored(known, prompt):
    tree = RadixTree()
    for other in known:
        best = max((common(other, earlier) for earlier in tree.prefixes()), default=0)
        _, added = tree.insert(other)
        assert added == token_count(other) - best
    expected = max(common(other, prompt) for other in known)
    assert tree.peek(prompt) == expected
    assert tree.match(prompt)[1] == expected
    assert tree.tokens == len(stored(tree)) == tree.evictable


@given(st.lists(prompts, min_size=1, max_size=12), st.data())
@settings(max_examples=300)
def test_eviction_frees_exactly_what_is_asked_and_never_a_locked_token(known, data):
    tree = RadixTree()
    for prompt in known:
        tree.insert(prompt)
    kept = data.draw(st.sampled_from(known))
    node, matched = tree.match(kept)
    tree.lock(node)
    assert tree.evictable == tree.tokens - matched
    before, asked = tree.tokens, data.draw(st.integers(1, 60))
    freed = tree.evict(asked)
    assert freed == min(asked, before - matched)
    assert tree.tokens == before - freed == len(stored(tree))
    assert tree.peek(kept) == token_count(kept)
    tree.unlock(node)
    assert tree.evict(1000) == before - freed
    assert tree.tokens == tree.evictable == 0


@given(st.lists(prompts, min_size=1, max_size=40), st.integers(5, 30), st.integers(0, 1000))
@settings(max_examples=200)
def test_a_bounded_tree_stays_within_its_bound(known, bound, seed):
    tree, source, held = RadixTree(), random.Random(seed), []
    for prompt in known:
        if held and source.random() < 0.5:
            tree.unlock(held.pop(source.randrange(len(held))))
        missing = tree.tokens + token_count(prompt) - tree.peek(prompt) - bound
        if missing > 0:
            tree.evict(missing)
        missing = tree.tokens + token_count(prompt) - tree.peek(prompt) - bound
        if missing > 0:
            continue
        node, _ = tree.insert(prompt)
        tree.lock(node)
        held.append(node)
        assert tree.tokens <= bound
        assert tree.tokens == len(stored(tree))
    for node in held:
        tree.unlock(node)
    assert tree.evictable == tree.tokens


def test_the_least_recently_used_leaf_goes_first_and_last_token_first():
    tree = RadixTree()
    system = Segment("system", 10)
    for name in ("old", "new"):
        tree.insert((system, Segment(name, 5)))
    tree.match((system, Segment("old", 5)))  # used again: now "new" is the older one
    tree.evict(3)
    assert tree.peek((system, Segment("new", 5))) == 12
    assert tree.peek((system, Segment("old", 5))) == 15
    tree.evict(2)
    assert tree.peek((system, Segment("new", 5))) == 10
    tree.evict(5)
    assert tree.peek((system, Segment("old", 5))) == 10
    assert tree.evict(99) == 10
