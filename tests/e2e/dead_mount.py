"""A FUSE file system with one file that opens and never gives a byte, as a file server that is gone:
dead_mount.py FOLDER. It ends with SIGTERM or SIGKILL; then readers get an error."""
import errno
import stat
import sys
import time

import fuse

fuse.fuse_python_api = (0, 2)
NAME = "/shard-0.bin"


class Dead(fuse.Fuse):
    def getattr(self, path):
        found = fuse.Stat()
        found.st_mode = stat.S_IFDIR | 0o755 if path == "/" else stat.S_IFREG | 0o444
        found.st_nlink, found.st_size = 1, 0 if path == "/" else 1 << 20
        return found if path in ("/", NAME) else -errno.ENOENT

    def readdir(self, path, offset):
        for name in (".", "..", NAME[1:]):
            yield fuse.Direntry(name)

    def open(self, path, flags):
        return 0 if path == NAME else -errno.ENOENT

    def read(self, path, size, offset):
        time.sleep(3600)
        return b""


if __name__ == "__main__":
    server = Dead()
    server.fuse_args.mountpoint = sys.argv[1]
    server.fuse_args.setmod("foreground")
    server.main()
