"""What a user has: the pages of docs/, a folder with the program on the PATH, and the settings of an account."""

import os

from sandbox_process import EXECUTABLE, ROOT


def blocks(language, page):
    """The blocks of a page in one language, in order."""
    text = (ROOT / "docs" / page).read_text()
    return [part.split("\n```", 1)[0] for part in text.split(f"```{language}\n")[1:]]


def path_with_program(folder):
    """A PATH on which the program is found, in a folder `bin` of this folder."""
    (folder / "bin").mkdir()
    (folder / "bin" / "source-contact-intelligence").symlink_to(EXECUTABLE)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def account(sandbox):
    """The settings of an account as variables of the environment."""
    return {
        "CONTACT_INTELLIGENCE_BASE_URL": sandbox.url,
        "CONTACT_INTELLIGENCE_API_KEY": sandbox.key,
        "CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE": "6000",
    }
