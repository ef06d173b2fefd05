"""Long runs that look for a broken promise: ``make soak``.

``python -m soak.bounds`` fits thousands of tiny problems and compares every bound of their
certificates with all partitions, in exact arithmetic; ``python -m soak.proofs`` does so with every
level of ``certify``. ``python -m soak.threads`` runs fits side by side in threads and in forked
children, ``python -m soak.workers`` on a cluster whose workers die, and ``python -m soak.resume``
kills fits that go on from their checkpoints. All end with an error if a promise was broken.
"""
