// A mutex with priority inheritance, which std::mutex has not: as long as a real-time thread waits
// for it, its owner runs at that thread's priority. For std::lock_guard.
#ifndef PI_MUTEX_HPP
#define PI_MUTEX_HPP

#include <pthread.h>

#include <system_error>

class PiMutex {
public:
	PiMutex()
	{
		pthread_mutexattr_t inherit;

		pthread_mutexattr_init(&inherit);
		int error = pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
		if (error == 0)
			error = pthread_mutex_init(&mutex, &inherit);
		pthread_mutexattr_destroy(&inherit);
		if (error != 0)
			throw std::system_error(error, std::generic_category(),
						"mutex with priority inheritance");
	}
	~PiMutex() { pthread_mutex_destroy(&mutex); }
	PiMutex(const PiMutex &) = delete;
	PiMutex &operator=(const PiMutex &) = delete;

	void lock() noexcept { pthread_mutex_lock(&mutex); }
	void unlock() noexcept { pthread_mutex_unlock(&mutex); }

private:
	pthread_mutex_t mutex;
};

#endif
