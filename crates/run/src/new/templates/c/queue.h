/* A queue from one thread to one other, without a lock: neither ever waits for the other. */
#ifndef QUEUE_H
#define QUEUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define QUEUE_SLOTS 64u /* a power of two */

struct report {
	uint64_t cycles, skipped, late_ns_max, late_ns_sum;
};

struct queue {
	alignas(64) _Atomic uint32_t pushed; /* written by the one end, */
	alignas(64) _Atomic uint32_t popped; /* by the other: each on a cache line of its own */
	uint64_t dropped;                    /* of the pushing end: the queue was full */
	struct report slot[QUEUE_SLOTS];
};

static inline void queue_push(struct queue *queue, struct report report)
{
	uint32_t pushed = atomic_load_explicit(&queue->pushed, memory_order_relaxed);

	if (pushed - atomic_load_explicit(&queue->popped, memory_order_acquire) == QUEUE_SLOTS) {
		queue->dropped++;
		return;
	}
	queue->slot[pushed % QUEUE_SLOTS] = report;
	atomic_store_explicit(&queue->pushed, pushed + 1, memory_order_release);
}

static inline bool queue_pop(struct queue *queue, struct report *report)
{
	uint32_t popped = atomic_load_explicit(&queue->popped, memory_order_relaxed);

	if (popped == atomic_load_explicit(&queue->pushed, memory_order_acquire))
		return false;
	*report = queue->slot[popped % QUEUE_SLOTS];
	atomic_store_explicit(&queue->popped, popped + 1, memory_order_release);
	return true;
}

#endif
