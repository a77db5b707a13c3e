"""torchrun; Debian's torch 1.13 cannot read its own --redirects under Python 3.11."""
from torch.distributed import run
from torch.distributed.elastic.multiprocessing import Std

Std.from_str = classmethod(lambda cls, text: cls(int(text)))

if __name__ == "__main__":
    run.main()
