'use strict';

// Node's ali-ons client, led by the steps of a scenario: a line of standard input is one step, a line of standard output
// its result, both JSON. The steps are those of tests/interop/client_program.py.
//
// Usage: node scenario_client.js NAME_SERVER, with NODE_PATH where ali-ons is

const readline = require('readline');
const { Consumer, Message, Producer } = require('ali-ons');

const nameServer = process.argv[2];
const silent = () => {};
const httpclient = {}; // wanted always, used only to ask an address server
const logger = { debug: silent, info: silent, warn: silent, error: console.error };
const consumers = new Map();
let producer;

class NotOffered extends Error {}

const lacking = {
  'create topics': 'no send to a topic that does not exist yet',
  'hear resets': 'it does not answer what a broker asks',
};

const steps = {
  async send({ how, messages }) {
    if (!producer) {
      producer = new Producer({ nameSrv: nameServer, producerGroup: 'node-producers', instanceName: 'producer', httpclient, logger });
      producer.on('error', console.error);
      await producer.ready();
    }
    switch (how) {
      case 'sync': {
        const sent = [];
        for (const message of messages) {
          sent.push(sentView(await producer.send(messageOf(message))));
        }
        return sent;
      }
      case 'async':
        return (await Promise.all(messages.map(message => producer.send(messageOf(message))))).map(sentView);
      case 'ordered':
        throw new NotOffered('keys that fall on queue 0 are spread over all queues, a fault of the client');
      case 'oneway':
        throw new NotOffered('no oneway send');
      case 'batch':
        throw new NotOffered('no batches');
      default:
        throw new Error(how);
    }
  },

  async transact() {
    throw new NotOffered('no transactions');
  },

  async consume(step) {
    if (step.pop) {
      throw new NotOffered('no pop');
    }
    if (step.orderly) {
      throw new NotOffered('no orderly listener: it never locks queues');
    }
    if (step.replies) {
      throw new NotOffered('no request-reply');
    }
    const push = new Consumer({
      nameSrv: nameServer,
      consumerGroup: step.group,
      instanceName: step.consumer,
      isBroadcast: step.broadcast,
      consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
      maxReconsumeTimes: step.maxReconsumeTimes === undefined ? 16 : step.maxReconsumeTimes,
      httpclient,
      logger,
    });
    const deliveries = [];
    push.on('error', error => console.error(error.message));
    await push.ready();
    const selector = step.sql ? { expressionType: 'SQL92', subString: step.expression } : step.expression;
    push.subscribe(step.topic, selector, async message => {
      deliveries.push(view(message));
      if (message.body.toString().startsWith('fail') && message.reconsumeTimes < step.failures) {
        throw new Error('as the scenario wants');
      }
    });
    consumers.set(step.consumer, { push, deliveries });
  },

  async deliveries({ consumer, from }) {
    return consumers.get(consumer).deliveries.slice(from);
  },

  async stop({ consumer }) {
    const { push } = consumers.get(consumer);
    consumers.delete(consumer);
    await push.close();
  },

  async pull() {
    throw new NotOffered('no pull consumer');
  },

  async 'lite-pull'() {
    throw new NotOffered('no pull consumer');
  },

  async 'by-id'() {
    throw new NotOffered('no queries');
  },

  async 'by-key'() {
    throw new NotOffered('no queries');
  },

  async 'queue-offsets'() {
    throw new NotOffered('no offset queries');
  },

  async can({ feature }) {
    throw new NotOffered(lacking[feature]);
  },

  async request() {
    throw new NotOffered('no request-reply');
  },
};

function messageOf(given) {
  const message = new Message(given.topic, given.tags || '', Buffer.from(given.body, 'base64'));
  if (given.keys) {
    message.keys = given.keys.split(' ');
  }
  Object.assign(message.properties, given.properties);
  if (given.delayLevel) {
    message.delayTimeLevel = given.delayLevel;
  }
  if (given.shardingKey) {
    message.shardingKey = given.shardingKey;
  }
  return message;
}

function sentView(result) {
  return {
    status: result.sendStatus,
    offsetMsgId: result.msgId, // the client gives no other id
    queueId: Number(result.messageQueue.queueId),
    queueOffset: Number(result.queueOffset),
  };
}

function view(message) {
  return {
    topic: message.topic,
    queueId: message.queueId,
    queueOffset: Number(message.queueOffset),
    body: message.body.toString('base64'),
    tags: message.tags,
    keys: message.keys,
    msgId: message.msgId,
    reconsumeTimes: message.reconsumeTimes,
    properties: message.properties,
  };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const step = JSON.parse(line);
    let answer;
    try {
      answer = { result: (await steps[step.do](step)) ?? null };
    } catch (error) {
      answer = error instanceof NotOffered ? { none: error.message } : { error: error.stack };
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
  process.exit(0);
}

main();
