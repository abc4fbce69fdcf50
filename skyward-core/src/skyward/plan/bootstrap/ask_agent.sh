#!/bin/sh
node=@NODE@
MARK=${node##*/}
cd "$node" 2>/dev/null || exit 3
pid=$(cat agent.pid 2>/dev/null)
# After a reboot another process may have the number.
if alive "$pid"; then
  if [ ! -d /proc/self ] || carries "$pid"; then exit 0; fi
fi
tail -n 10 agent.log
exit 4
