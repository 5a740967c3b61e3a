"""Task libraries on RocketMQ: `dramatiq` and `celery` here are their brokers; work_queues.py is what both stand on."""
