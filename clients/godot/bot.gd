# Plays a game against a bot of the service, over JSON. Run it with: godot3-server -s bot.gd
extends SceneTree

const ATTEMPTS = 5

var url = "http://127.0.0.1:8080"
var token = ""
var http = HTTPRequest.new()
var crypto = Crypto.new()


func _init():
	if OS.has_environment("EDGE_URL"):
		url = OS.get_environment("EDGE_URL")
	http.timeout = 40 # a long poll takes up to 25 s
	root.add_child(http)
	play()


func play():
	yield(self, "idle_frame") # the request needs a running tree
	var created = yield(post("/v1/games", {"requestId": request_id()}), "completed")
	var game_url = "/v1/games/" + created.game.gameId
	token = created.hostToken
	var joined = yield(post(game_url + ":join", {"name": "Godot", "requestId": request_id()}), "completed")
	token = joined.seatToken
	yield(post(game_url + ":addBot", {"level": "BOT_LEVEL_EASY", "requestId": request_id()}), "completed")
	var game = yield(post(game_url + ":start", {"requestId": request_id()}), "completed").game
	while game.state != "GAME_STATE_FINISHED":
		if game.state == "GAME_STATE_PLAYING" and game.turn.seat == joined.seat:
			var suggested = yield(post(game_url + ":suggestTurn", {}), "completed")
			var turn = suggested.turn # a play or a draw, and the etag of the game that it is for
			turn.erase("gameId") # it is in the URL
			turn.requestId = request_id()
			yield(post(game_url + ":playTurn", turn), "completed")
		elif game.state == "GAME_STATE_ROUND_OVER":
			yield(post(game_url + ":startNextRound", {"requestId": request_id()}), "completed")
		else: # another player's turn: wait for the next change
			yield(fetch("%s/changes?after_revision=%d&wait_seconds=25" % [game_url, game.revision]), "completed")
		game = yield(fetch(game_url), "completed").game
	print("winner: seat %d" % game.winnerSeats[0])
	for player in game.players:
		print("%s: %d points" % [player.name, player.get("totalPoints", 0)])
	quit()


func post(path, body):
	return send(HTTPClient.METHOD_POST, path, to_json(body))


func fetch(path):
	return send(HTTPClient.METHOD_GET, path, "")


# Returns the answer of the service as a dictionary. It sends a request again if the service does not answer, which changes
# nothing twice, because the request has an id. A refusal is an empty dictionary: the caller looks at the game again.
func send(method, path, body):
	for attempt in ATTEMPTS:
		var headers = ["content-type: application/json"]
		if token != "":
			headers.append("authorization: Bearer " + token)
		http.request(url + path, headers, true, method, body)
		var answer = yield(http, "request_completed") # result, status, headers, body
		var text = answer[3].get_string_from_utf8()
		if answer[0] == HTTPRequest.RESULT_SUCCESS and answer[1] == 200:
			return parse_json(text)
		printerr(path, ": ", answer[1], " ", text)
		if answer[0] == HTTPRequest.RESULT_SUCCESS and answer[1] < 500 and answer[1] != 429:
			return {}
		yield(create_timer(1), "timeout")
	quit(1)
	return {}


func request_id():
	return crypto.generate_random_bytes(16).hex_encode()
