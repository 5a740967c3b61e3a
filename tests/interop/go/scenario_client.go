// RocketMQ's Go client, led by the steps of a scenario: a line of standard input is one step, a line of standard output
// its result, both JSON. The steps are those of tests/interop/client_program.py.
//
// Usage: scenario_client NAME_SERVER
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const timeout = 10 * time.Second

type notOffered struct{ reason string }

func (n notOffered) Error() string { return n.reason }

// Bodies are base64 in JSON, as []byte always is.
type message struct {
	Topic       string            `json:"topic"`
	Body        []byte            `json:"body"`
	Tags        string            `json:"tags"`
	Keys        string            `json:"keys"`
	Properties  map[string]string `json:"properties"`
	DelayLevel  int               `json:"delayLevel"`
	ShardingKey string            `json:"shardingKey"`
}

type step struct {
	Do                string    `json:"do"`
	How               string    `json:"how"`
	Messages          []message `json:"messages"`
	Message           message   `json:"message"`
	Consumer          string    `json:"consumer"`
	Group             string    `json:"group"`
	Topic             string    `json:"topic"`
	Expression        string    `json:"expression"`
	SQL               bool      `json:"sql"`
	Orderly           bool      `json:"orderly"`
	Broadcast         bool      `json:"broadcast"`
	Pop               bool      `json:"pop"`
	Replies           bool      `json:"replies"`
	Failures          int32     `json:"failures"`
	MaxReconsumeTimes *int32    `json:"maxReconsumeTimes"`
	From              int       `json:"from"`
	Count             int       `json:"count"`
	Timeout           int       `json:"timeout"`
}

type sent struct {
	Status      string `json:"status"`
	MsgID       string `json:"msgId"`
	OffsetMsgID string `json:"offsetMsgId"`
	QueueID     int    `json:"queueId"`
	QueueOffset int64  `json:"queueOffset"`
}

type delivery struct {
	Topic          string            `json:"topic"`
	QueueID        int               `json:"queueId"`
	QueueOffset    int64             `json:"queueOffset"`
	Body           []byte            `json:"body"`
	Tags           string            `json:"tags"`
	Keys           string            `json:"keys"`
	MsgID          string            `json:"msgId"`
	ReconsumeTimes int32             `json:"reconsumeTimes"`
	Properties     map[string]string `json:"properties"`
}

// client keeps a producer for each way to choose a queue: the Go client fixes that when a producer is made.
type client struct {
	nameServers primitive.NsResolver
	producer    rocketmq.Producer
	ordered     rocketmq.Producer
	consumers   map[string]*pushConsumer
}

func main() {
	rlog.SetLogLevel("error")
	_ = rlog.SetOutputPath(os.DevNull)
	c, err := newClient(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		result, err := c.step(s)
		var none notOffered
		switch {
		case errors.As(err, &none):
			say(map[string]any{"none": none.reason})
		case err != nil:
			say(map[string]any{"error": err.Error()})
		default:
			say(map[string]any{"result": result})
		}
	}
}

func say(answer map[string]any) {
	line, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func newClient(nameServer string) (*client, error) {
	c := &client{nameServers: primitive.NewPassthroughResolver([]string{nameServer}), consumers: map[string]*pushConsumer{}}
	var err error
	if c.producer, err = c.startProducer("go-producers", producer.NewRoundRobinQueueSelector()); err != nil {
		return nil, err
	}
	c.ordered, err = c.startProducer("go-ordered-producers", producer.NewHashQueueSelector())
	return c, err
}

func (c *client) startProducer(group string, selector producer.QueueSelector) (rocketmq.Producer, error) {
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(c.nameServers), producer.WithGroupName(group), producer.WithInstanceName(group),
		producer.WithQueueSelector(selector), producer.WithSendMsgTimeout(timeout))
	if err != nil {
		return nil, err
	}
	return p, p.Start()
}

func (c *client) step(s step) (any, error) {
	switch s.Do {
	case "send":
		return c.send(s.How, s.Messages)
	case "transact":
		return c.transact(s)
	case "consume":
		if s.Pop {
			return nil, notOffered{"no pop"}
		}
		return nil, c.consume(s)
	case "deliveries":
		return c.consumers[s.Consumer].since(s.From), nil
	case "stop":
		stopping := c.consumers[s.Consumer]
		delete(c.consumers, s.Consumer)
		return nil, stopping.push.Shutdown()
	case "pull":
		return c.pull(s)
	case "lite-pull":
		return nil, notOffered{"its only pull consumer is the one under “pull”"}
	case "by-id", "by-key":
		return nil, notOffered{"no queries"}
	case "queue-offsets":
		return nil, notOffered{"no offset queries"}
	case "can":
		return nil, nil // it can, whatever it is
	case "request":
		answer, err := c.producer.Request(
			context.Background(), time.Duration(s.Timeout)*time.Millisecond, messageOf(s.Message))
		if err != nil {
			return nil, err
		}
		return delivery{Topic: answer.Topic, Body: answer.Body, Properties: answer.GetProperties()}, nil
	}
	return nil, fmt.Errorf("no such step: %s", s.Do)
}

func (c *client) send(how string, given []message) (any, error) {
	ctx := context.Background()
	results := []sent{}
	if how == "batch" {
		messages := []*primitive.Message{}
		for _, m := range given {
			messages = append(messages, messageOf(m))
		}
		result, err := c.producer.SendSync(ctx, messages...)
		if err != nil {
			return nil, err
		}
		return append(results, sentView(result)), nil
	}
	type outcome struct {
		result *primitive.SendResult
		err    error
	}
	waiting := make(chan outcome, len(given))
	for _, m := range given {
		var result *primitive.SendResult
		var err error
		switch how {
		case "sync":
			result, err = c.producer.SendSync(ctx, messageOf(m))
		case "ordered":
			result, err = c.ordered.SendSync(ctx, messageOf(m))
		case "oneway":
			err = c.producer.SendOneWay(ctx, messageOf(m))
		case "async":
			err = c.producer.SendAsync(ctx, func(_ context.Context, r *primitive.SendResult, e error) {
				waiting <- outcome{r, e}
			}, messageOf(m))
		}
		if err != nil {
			return nil, err
		}
		if result != nil {
			results = append(results, sentView(result))
		}
	}
	for range given {
		if how != "async" {
			break
		}
		select {
		case done := <-waiting:
			if done.err != nil {
				return nil, done.err
			}
			results = append(results, sentView(done.result))
		case <-time.After(timeout):
			return nil, errors.New("no answer to an asynchronous send")
		}
	}
	return results, nil
}

func messageOf(given message) *primitive.Message {
	m := primitive.NewMessage(given.Topic, given.Body)
	for name, value := range given.Properties {
		m.WithProperty(name, value)
	}
	if given.Tags != "" {
		m.WithTag(given.Tags)
	}
	if given.Keys != "" {
		m.WithKeys(strings.Split(given.Keys, " "))
	}
	if given.DelayLevel != 0 {
		m.WithDelayTimeLevel(given.DelayLevel)
	}
	if given.ShardingKey != "" {
		m.WithShardingKey(given.ShardingKey)
	}
	return m
}

func sentView(r *primitive.SendResult) sent {
	status := fmt.Sprintf("status %d", r.Status)
	if r.Status == primitive.SendOK {
		status = "SEND_OK"
	}
	return sent{status, r.MsgID, r.OffsetMsgID, r.MessageQueue.QueueId, r.QueueOffset}
}

// pushConsumer keeps what it was given; bodies that begin with "fail" fail as often as was asked for.
type pushConsumer struct {
	push       rocketmq.PushConsumer
	mutex      sync.Mutex
	deliveries []delivery
}

func (p *pushConsumer) since(from int) []delivery {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]delivery{}, p.deliveries[from:]...)
}

func (p *pushConsumer) keep(m *primitive.MessageExt) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.deliveries = append(p.deliveries, view(m))
}

func (c *client) consume(s step) error {
	options := []consumer.Option{
		consumer.WithNsResolver(c.nameServers), consumer.WithGroupName(s.Group), consumer.WithInstance(s.Consumer),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(s.Orderly),
		consumer.WithSuspendCurrentQueueTimeMillis(200 * time.Millisecond),
	}
	if s.Broadcast {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if s.MaxReconsumeTimes != nil {
		options = append(options, consumer.WithMaxReconsumeTimes(*s.MaxReconsumeTimes))
	}
	push, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return err
	}
	kept := &pushConsumer{push: push}
	listen := func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			kept.keep(m)
			if strings.HasPrefix(string(m.Body), "fail") && m.ReconsumeTimes < s.Failures {
				if s.Orderly {
					return consumer.SuspendCurrentQueueAMoment, nil
				}
				return consumer.ConsumeRetryLater, nil
			}
			if s.Replies {
				if err := c.reply(m); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: s.Expression}
	if s.SQL {
		selector.Type = consumer.SQL92
	}
	if err := push.Subscribe(s.Topic, selector, listen); err != nil {
		return err
	}
	c.consumers[s.Consumer] = kept
	return push.Start()
}

// reply waits first: the Go client tells the broker of a producer only with its next heartbeat. It also sets the body
// itself: CreateReplyMessage takes one and loses it.
func (c *client) reply(question *primitive.MessageExt) error {
	time.Sleep(time.Second)
	text := append([]byte("re: "), question.Body...)
	answer, err := consumer.CreateReplyMessage(question, text)
	if err != nil {
		return err
	}
	answer.Body = text
	_, err = c.producer.SendSync(context.Background(), answer)
	return err
}

// decider ends transactions as their bodies say.
type decider struct{}

func (decider) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	if strings.HasSuffix(string(m.Body), "later") {
		return primitive.UnknowState
	}
	return outcomeOf(m.Body)
}

func (decider) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	return outcomeOf(m.Body)
}

func outcomeOf(body []byte) primitive.LocalTransactionState {
	if strings.HasPrefix(string(body), "commit") {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func (c *client) transact(s step) (any, error) {
	p, err := rocketmq.NewTransactionProducer(
		decider{}, producer.WithNsResolver(c.nameServers), producer.WithGroupName(s.Group),
		producer.WithInstanceName(s.Group), producer.WithSendMsgTimeout(timeout))
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil { // and runs on: the broker will ask
		return nil, err
	}
	statuses := []string{}
	for _, m := range s.Messages {
		result, err := p.SendMessageInTransaction(context.Background(), messageOf(m))
		if err != nil {
			return nil, err
		}
		statuses = append(statuses, sentView(result.SendResult).Status)
	}
	return statuses, nil
}

func (c *client) pull(s step) (any, error) {
	pull, err := rocketmq.NewPullConsumer(
		consumer.WithNsResolver(c.nameServers), consumer.WithGroupName(s.Group), consumer.WithInstance(s.Group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return nil, err
	}
	if err := pull.Subscribe(s.Topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}); err != nil {
		return nil, err
	}
	if err := pull.Start(); err != nil {
		return nil, err
	}
	found := []delivery{}
	for deadline := time.Now().Add(3 * timeout); len(found) < s.Count && time.Now().Before(deadline); {
		request, err := pull.Poll(context.Background(), time.Second)
		if consumer.IsNoNewMsgError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, m := range request.GetMsgList() {
			found = append(found, view(m))
		}
		pull.ACK(context.Background(), request, consumer.ConsumeSuccess)
	}
	if err := pull.PersistOffset(context.Background(), s.Topic); err != nil {
		return nil, err
	}
	return found, pull.Shutdown()
}

func view(m *primitive.MessageExt) delivery {
	return delivery{
		m.Topic, m.Queue.QueueId, m.QueueOffset, m.Body, m.GetTags(), m.GetKeys(), m.MsgId, m.ReconsumeTimes,
		m.GetProperties(),
	}
}
