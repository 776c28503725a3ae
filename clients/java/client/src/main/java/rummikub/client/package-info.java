/**
 * A client of the Rummikub rules service: {@link rummikub.client.Rummikub} is a connection with the stubs of the contract
 * ({@code rummikub.v1}), {@link rummikub.client.Refusals} reads errors, {@link rummikub.client.Watch} follows a game,
 * {@link rummikub.client.Turns} makes turns, and {@link rummikub.client.Tiles} converts tiles to text.
 */
package rummikub.client;
