-- Begins with: waking.
-- An item was taken, so that there is room for one. ARGV: queue.
wake('sky:queue-putting:' .. ARGV[1], 'sky:queue-room:' .. ARGV[1])
return 1
