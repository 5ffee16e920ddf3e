"""Scripted answers in each wire dialect. A module a dialect; all of them take the parts of `mmsp_nb.testing.parts`.

``frames(parts, ...)`` gives the frames of one streamed answer, ``error(...)`` the frame of an error inside a
stream, ``refusal(...)`` the JSON body of a refused request, ``models(ids)`` a page of a model listing.
"""

from mmsp_nb.testing.wire import chat, embeddings, generate_content, interactions, messages, mmsp, responses

__all__ = ["chat", "embeddings", "generate_content", "interactions", "messages", "mmsp", "responses"]
