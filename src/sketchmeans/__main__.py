"""``python -m sketchmeans`` is the command line."""

from sketchmeans.cli import main

if __name__ == "__main__":
    main()
