"""
Give each node its own part of the data, and join what they make of it.
"""

import skyward as sky


@sky.function
def count_words(lines: list[str]) -> dict[str, int]:
    # Every node gets all lines and works on its share of them; together the shares are all lines, each once.
    counts: dict[str, int] = {}
    for line in sky.shard(lines):
        for word in line.lower().split():
            counts[word] = counts.get(word, 0) + 1
    info = sky.instance_info()
    print(f"node {info.node} of {info.total_nodes} counted {sum(counts.values())} words")
    return counts


VERSES = [
    "the mouse saw the cat",
    "the cat saw the dog",
    "the dog saw nobody at all",
    "and nobody saw the mouse",
] * 250

with sky.Compute(nodes=2) as pool:
    total: dict[str, int] = {}
    for part in count_words(VERSES) @ pool:
        for word, times in part.items():
            total[word] = total.get(word, 0) + times

expected = count_words.local(VERSES)
print("the same as here:", total == expected)
print("most frequent:", max(total.items(), key=lambda pair: pair[1]))
