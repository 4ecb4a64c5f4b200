"""The Python that pages of documentation show, run as it stands there."""
import re
import types


def block(folder, page, words):
    """The one block of Python code on a page that has these words."""
    blocks = [found for found in re.findall(r"```python\n(.*?)```", (folder / page).read_text(), re.DOTALL) if words in found]
    assert len(blocks) == 1, f"{page}: {len(blocks)} blocks with {words!r}"
    return blocks[0]


def run(folder, page, words, **names):
    """What the block leaves behind, begun with these names."""
    exec(compile(block(folder, page, words), f"{page}, the block with {words!r}", "exec"), names)
    return types.SimpleNamespace(**names)
