"""The role {eval}`number["key"]`: the text that a cell of the page keeps under `key`.

JupyterLab evaluates the role's expression in the running kernel. The site has no kernel, so this
extension reads the text that `inferlab.numbers.number` glued to the executed cell. Any other
expression is a warning, and so an error in a strict build: it would show on one side only.
"""

import ast
import re

from docutils import nodes
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.utils import retrieve_glue_data
from myst_nb.ext.utils import RoleBase
from sphinx.util import logging

logger = logging.getLogger(__name__)

EXPRESSION = re.compile(r"""number\[(["'])(?P<key>[a-z0-9-]+)\1\]""")
NO_BREAK_SPACE = "\u00a0"


class NumberRole(RoleBase):
    def run(self):
        match = EXPRESSION.fullmatch(self.text.strip())
        if not match:
            self.warn(f'{{eval}}`{self.text}`: only number["key"] can be shown on the site')
            return [], []
        try:
            data = retrieve_glue_data(self.document, match["key"])
        except RetrievalError:
            self.warn(f'no cell of this page computes number("{match["key"]}", ...)')
            return [], []
        text = ast.literal_eval(data.data["text/plain"])
        return [nodes.inline(text, text.replace(" ", NO_BREAK_SPACE), classes=["number"])], []

    def warn(self, message):
        logger.warning(message, location=(self.source, self.line), type="inferlab")


def setup(app):
    app.setup_extension("myst_nb")
    app.add_role("eval", NumberRole(), override=True)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
