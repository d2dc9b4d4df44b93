"""The pages over the tables of artifacts: `/browse/` of `gristmill ui`, and `gristmill browse`.

`app.py` has the routes and the server, `shelf.py` what an address asks for, the artifacts and the
open tables, `local_requests.py` the requests that are refused. Needs the extra `browse`.
"""
